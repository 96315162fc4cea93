// Package configs holds the built-in surveys and the targets of the lab as they stand in this folder. Every
// default of a survey is in quick.yaml and nowhere else.
package configs

import "embed"

// Files holds quick.yaml, which sets every key, and full.yaml, which says what is different in a full survey.
//
//go:embed quick.yaml full.yaml
var Files embed.FS

// Lab holds the targets of the lab, a file each, and in lab/surveys the settings that they are surveyed with.
//
//go:embed lab
var Lab embed.FS
