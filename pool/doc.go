// Package pool holds the messages of contexts, by id: their shape, their encoding, and the functions that read and write them in a transaction that the
// caller opened.
//
// A message is stored once, however many branches hold it. It is encoded as deterministic CBOR with integer keys and a CRC-32C. Large contents lie beside
// it as artifacts under their SHA-256. docs/format.md describes the bytes.
package pool
