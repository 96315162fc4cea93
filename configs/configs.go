// Package configs holds the built-in surveys as they stand in this folder. Every default of claimbench is in
// quick.yaml and nowhere else.
package configs

import "embed"

// Files holds quick.yaml, which sets every key, and full.yaml, which says what is different in a full survey.
//
//go:embed quick.yaml full.yaml
var Files embed.FS
