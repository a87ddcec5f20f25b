// Package pool has what a conversation is made of: messages with their parts, calls and results, and their JSON.
//
//	m := pool.NewText(pool.User, "What is in this picture?")
//	m.Content = append(m.Content, pool.Part{Type: pool.ImagePart, MediaType: "image/png", Data: png})
//	if err := m.Validate(); err != nil { … } // the error says where and why
//	raw, err := json.Marshal(m)
//
// A message that is stored never changes. Text returns the words of a message, Whole those of an answer that a program relies on: it is an error if the answer was
// broken off, refused or cut by a limit. An Entry is a message at its place on a branch.
package pool
