// Package serve serves a store to other programs: over HTTP, as a handler that any Go program can mount, and over standard input and output as JSON-RPC.
//
// One table of methods (table.go) has everything: a name, a route, a scope, the types of parameters and result, and a function. The routing, the rights, the names
// of JSON-RPC, the OpenAPI document and the reference in docs/api.md are made from it. A new method is an entry of the table and its function.
//
// The package uses only the library. It keeps no state of a conversation, never uses the store's current context or a context's active branch, and changes them only
// if a request asks for it. It decides nothing by itself, and has no key of a provider.
package serve
