package explore

import "regexp"

// documented are the names that the engine's documentation speaks of. Nothing
// else may be left when all is over.
var documented = regexp.MustCompile(`^(sentinel\.flock|[0-9a-f]{2}(/[0-9a-f]{64}(` +
	`\.gen[1-9][0-9]*\.claim|\.claim|\.done|\.flock` +
	`|\.new-[0-9a-f]+(/record)?` +
	`|\.lock(\.stale-[0-9]+-(inode[0-9]+|[0-9a-f]+))?(/owner(/record)?|/evicted)?))?)$`)

// undocumented is the first name that should not be there, or "".
func (m *model) undocumented() string {
	for _, name := range m.names() {
		known, ok := m.w.known[name]
		if !ok {
			known = documented.MatchString(name)
			m.w.known[name] = known
		}
		if !known {
			return name
		}
	}
	return ""
}
