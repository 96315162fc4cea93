package config

import (
	"fmt"
	"strings"
)

// Nearest is the one of known that word was probably meant to be: the one that alone begins with it, or else the
// one that the fewest insertions, deletions and replacements of letters turn it into, when they are few for its
// length. Upper and lower case are the same. Of several as near, it is the first.
func Nearest(word string, known []string) (string, bool) {
	word = strings.ToLower(word)
	if full, ok := completion(word, known); ok {
		return full, true
	}
	nearest, least := "", -1
	for _, k := range known {
		d := distance([]rune(word), []rune(strings.ToLower(k)))
		if d <= tolerance(k) && (least < 0 || d < least) {
			nearest, least = k, d
		}
	}
	return nearest, least >= 0
}

func completion(word string, known []string) (full string, ok bool) {
	if word == "" {
		return "", false
	}
	for _, k := range known {
		if !strings.HasPrefix(strings.ToLower(k), word) {
			continue
		}
		if ok {
			return "", false
		}
		full, ok = k, true
	}
	return full, ok
}

// tolerance is a third of a word's letters, but two of them, a transposition, in words of four to eight.
func tolerance(word string) int {
	n := len([]rune(word))
	return min(n/2, max(2, n/3))
}

// distance is Levenshtein's: row holds the distances from the letters of a read so far to each prefix of b.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, letter := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replaced := diagonal
			if letter != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// hint ends the message about an unknown word: what it was probably meant to be, or else what there is.
func hint(word, what string, known []string) string {
	if k, ok := Nearest(word, known); ok {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return fmt.Sprintf("; the %ss are %s", what, strings.Join(known, ", "))
}
