//! The documents: JSON of three compressibilities, a third of which are long enough to be TOASTed,
//! as the article found typical.
//!
//! Lengths differ within a kind, as documents of one length would fill their pages with as many of
//! them however they are compressed.

/// A kind of documents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Documents {
    /// The value of the axis.
    pub(super) name: &'static str,
    /// The document of row `i` as SQL.
    sql: &'static str,
}

/// About what a document takes uncompressed.
pub(super) const BYTES: u64 = 3_300;

/// Events like those of a code host: names that repeat, hashes that do not, a text of words.
const EVENTS: &str = "jsonb_build_object(\
    'aa', 'key at the start ' || i, \
    'actor', jsonb_build_object('id', i::bigint * 7919, 'login', 'user' || (i % 5000), 'url', 'https://api.example.com/users/user' || (i % 5000)), \
    'commits', (SELECT jsonb_agg(jsonb_build_object('sha', md5(i::text || c) || md5(c::text || i), 'author', 'user' || ((i + c) % 5000), \
        'message', 'Merge branch feature-' || (i * c % 977) || ' into main and fix the build of module ' || (c % 17), \
        'url', 'https://api.example.com/repos/owner/project/commits/' || md5(i::text || c), 'distinct', c % 3 = 0)) \
        FROM generate_series(1, CASE WHEN i % 3 = 0 THEN 7 + i / 3 % 31 ELSE 1 + i % 2 END) c), \
    'middle_key', 'key in the middle ' || i, \
    'repository_with_a_long_name', jsonb_build_object('id', i % 9000, 'name', 'owner/project' || (i % 9000), 'url', 'https://api.example.com/repos/owner/project'), \
    'zz_key_that_comes_last_in_the_order_of_jsonb', 'key at the end ' || i)";

/// Lines of a server's log, which repeat each other nearly word by word.
const LOGS: &str = "jsonb_build_object(\
    'aa', 'key at the start ' || i, \
    'lines', (SELECT jsonb_agg('2026-01-01 10:' || lpad((c % 60)::text, 2, '0') || ':00.' || lpad((i * c % 1000)::text, 3, '0') || ' UTC [' || (i * 31 + c) % 32768 || \
        '] app@shop LOG:  duration: ' || (i * c % 9973) || '.' || (c * 37 % 1000) || ' ms  statement: SELECT * FROM orders WHERE customer = ' || (i + c) % 5000) \
        FROM generate_series(1, CASE WHEN i % 3 = 0 THEN 20 + i / 3 % 70 ELSE 2 + i % 6 END) c), \
    'middle_key', 'key in the middle ' || i, \
    'zz_key_that_comes_last_in_the_order_of_jsonb', 'key at the end ' || i)";

/// Text of words in no order, which compresses least.
const PROSE: &str = "jsonb_build_object(\
    'aa', 'key at the start ' || i, \
    'text', (SELECT string_agg((ARRAY['the','of','water','and','to','river','in','a','stone','that','it','harbour','was','for','window','on','are','letter','as','with', \
        'morning','his','they','garden','at','be','thousand','this','have','mountain','from','or','winter','one','had','question','by','word','answer','but','not','market', \
        'what','all','silence','were','we','journey','when','your','shadow','can','heard','kitchen','there','use','distance','an','each','company','which','she','evening','how']) \
        [1 + abs(hashint8(i::bigint * 1000003 + c)) % 64], ' ') \
        FROM generate_series(1, CASE WHEN i % 3 = 0 THEN 400 + i / 3 % 1600 ELSE 20 + i % 180 END) c), \
    'middle_key', 'key in the middle ' || i, \
    'zz_key_that_comes_last_in_the_order_of_jsonb', 'key at the end ' || i)";

/// Those of the article first; they decide where nothing else is said.
pub(super) static KINDS: [Documents; 3] = [
    Documents {
        name: "events",
        sql: EVENTS,
    },
    Documents {
        name: "logs",
        sql: LOGS,
    },
    Documents {
        name: "prose",
        sql: PROSE,
    },
];

impl Documents {
    /// The kind of this name, else that of the article.
    pub(super) fn named(name: &str) -> &'static Self {
        let [first, ..] = &KINDS;
        KINDS.iter().find(|kind| kind.name == name).unwrap_or(first)
    }

    /// A query for so many rows of a number and a document. It goes through text, so that each is
    /// compressed by the table it is put into.
    pub(super) fn rows(&self, count: u64) -> String {
        let sql = self.sql;
        format!("SELECT i, ({sql})::text::jsonb FROM generate_series(1, {count}) AS i")
    }
}
