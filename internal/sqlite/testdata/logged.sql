PRAGMA journal_mode = WAL;
CREATE TABLE songs (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO songs VALUES (1, 'in the file');
