// Package poolstore reads and writes messages and artifacts in a transaction that the caller opened, and compares messages.
//
// A message is stored once, however many branches hold it. It is encoded as deterministic CBOR with integer keys and a CRC-32C. Large contents lie beside
// it as artifacts under their SHA-256. docs/format.md describes the bytes.
package poolstore
