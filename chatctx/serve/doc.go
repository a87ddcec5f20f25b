// Package serve speaks for a store to other programs: over HTTP, as a handler that any Go program mounts, and over standard input and output as JSON-RPC.
//
// One table of methods (table.go) says what there is: a name, a route, a scope, the types that go in and out, and a function. From it come the routing, the rights,
// the names of JSON-RPC, the OpenAPI document and the reference in docs/api.md. A new method is a line of the table and its function.
//
// The package calls the library alone. It keeps no state of a conversation, never reads or moves the store's current context, and moves a branch's place only where
// a request asks for it. It decides nothing by itself, and knows of no key of a provider.
package serve
