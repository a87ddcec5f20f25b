CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT, PRIMARY KEY (message_hash, position));
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT, input_tokens INTEGER, output_tokens INTEGER, datetime_utc TEXT);
INSERT INTO messages VALUES ('b2:1', NULL, 'system', '{}'), ('b2:2', 'b2:1', 'user', '{}'), ('b2:3', 'b2:2', 'assistant', '{"id":"x"}'), ('b2:4', 'b2:3', 'user', '{}'), ('b2:5', 'b2:4', 'assistant', '{}'), ('b2:6', 'b2:5', 'tool', '{}'), ('b2:7', 'b2:6', 'assistant', '{}'), ('b2:8', 'b2:3', 'user', '{}');
INSERT INTO parts VALUES ('b2:1', 0, 'text', NULL, 'Be airy', NULL), ('b2:2', 0, 'text', NULL, 'a kite?', NULL), ('b2:3', 0, 'reasoning', NULL, 'hm', '{"signature":"c2ln"}'), ('b2:3', 1, 'text', NULL, 'A delta.', NULL), ('b2:4', 0, 'text', NULL, 'add', NULL), ('b2:5', 0, 'tool_call', 'add', NULL, '{"id":"c1","arguments":{"a":1}}'), ('b2:6', 0, 'tool_result', 'add', NULL, '{"tool_call_id":"c1","output":"1"}'), ('b2:7', 0, 'text', NULL, 'One.', NULL), ('b2:8', 0, 'text', NULL, 'why?', NULL);
INSERT INTO threads VALUES ('t1', 'sums', 'b2:7', NULL, '2026-08-02T10:00:00'), ('t2', 'reasons', 'b2:8', 't1', '2026-08-03T10:00:00');
INSERT INTO turns VALUES ('u1', 't1', NULL, 'b2:3', 'kite-1', 4, 2, '2026-08-02T09:00:00');
