// Package find keeps the search index and answers searches.
//
// It owns which texts of a message, title or prompt can be found, and what waits for the index. It may read every text, and write the buckets of the
// index alone. A change of a message is never its business: whoever stores one calls PutMessage or Wait.
package find
