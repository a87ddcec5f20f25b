// Package find keeps the search index and answers searches.
//
// It owns the choice of texts in a message, title or prompt that can be found, and the list of documents that wait for the index. It may read every text,
// but it writes only the index's buckets. It never changes a message beyond PutMessage: whoever stores a document calls PutMessage or Wait.
package find
