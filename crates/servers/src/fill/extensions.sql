-- Extensions that this installation has; drills and tests ask them what they think of a relation.

CREATE SCHEMA IF NOT EXISTS ext;

-- with pageinspect
CREATE EXTENSION pageinspect SCHEMA ext;

-- with pg_prewarm
CREATE EXTENSION pg_prewarm SCHEMA ext;

-- with amcheck
CREATE EXTENSION amcheck SCHEMA ext;

-- with pg_surgery
CREATE EXTENSION pg_surgery SCHEMA ext;

-- with pg_visibility
CREATE EXTENSION pg_visibility SCHEMA ext;

-- with pgstattuple
CREATE EXTENSION pgstattuple SCHEMA ext;
