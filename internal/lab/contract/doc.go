// Package contract decides whether a candidate may be measured at all: it mints
// the keys and tokens of a run, reads the contract cases, sends each of them to
// a candidate and compares status, headers, body and the rows written with what
// the contract says.
//
// The cases are data (candidates/oauth-events/contract.yaml). A case names a request, a
// token and one outcome; the outcomes are named in the same file. Nothing in
// this package knows which library a candidate verifies tokens with.
//
// Requests are written by hand onto the connection, byte for byte, because an
// HTTP client would repair the very requests that a contract check must send:
// two Authorization headers, a path with dot segments, a folded header line.
//
// Keys and tokens never appear in errors, reports or formatted values: the
// types that hold them print as a placeholder.
package contract
