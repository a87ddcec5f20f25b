package serve

// OpenAPI is the description of the API in OpenAPI 3.1.
func OpenAPI() []byte { return nil }
