package pool

// What a message keeps as it came may be as large as a file: the whole record of another program, a part of an unknown type, a provider's own block, the
// members that its reader did not know. Over inlineLimit such a value is an artifact, as the texts of results are, and the message's record names it by its
// place. Who reads the message gets it back.

// Aside names the artifact that has a value of a message.
type Aside struct {
	_      struct{} `cbor:",toarray"`
	SHA256 Hash
	Size   int64
}
