-- For encodings that have them; fails as a whole statement elsewhere.
INSERT INTO words (word, short, padded, name) SELECT w, w, w, w FROM unnest(ARRAY['été', 'Été', 'ete', 'éte', 'eté', 'straße', 'strasse', 'STRASSE', 'æther', 'aether', 'ñandú', 'nandu', 'Ångström', 'angstrom', 'øre', 'zürich', 'Zürich', 'zurich', 'ÿ', 'Ü']) w;
