// Package pool holds a context's messages, by id: their shape, their encoding, and the functions that read and write them
// in a transaction that somebody else opened.
//
// A message is stored once, whatever number of branches hold it. It is encoded as deterministic CBOR with integer keys and a
// CRC-32, and large contents lie beside it as artifacts under their SHA-256; docs/format.md gives the bytes.
package pool
