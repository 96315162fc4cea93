// Package facts says what host, kernel, mount, filesystem and network client a survey runs on, how far apart
// the routes of a target really are, and whether the process that left something behind is gone.
//
// It reads and never writes, and it decides nothing about a filesystem's behaviour: a mount option that it lists
// is what the kernel prints, not what was seen to happen. What can't be read is left empty, so an empty field
// never counts as evidence. One caveat: asking about a mount whose server does not answer blocks for as long as
// the kernel does. Callers that cannot afford that ask from a process they can abandon.
package facts
