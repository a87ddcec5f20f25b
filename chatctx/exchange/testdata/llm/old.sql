CREATE TABLE responses (id INTEGER PRIMARY KEY, prompt TEXT, response TEXT);
INSERT INTO responses VALUES (1, 'few columns', 'and no conversation');
CREATE VIEW attachments AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS id FROM n;
