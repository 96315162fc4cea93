package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// A claim file is one line, and after it what the work left:
//
//	c1 <nonce in hex> <generation> <length> <crc32c in hex>\n<record>
//
// The first byte is the state and the only one that ever changes, so that no
// change of it can be torn. The second is the version of the format. A later
// format begins with one of these states as well, or it would be taken for
// garbage.
const (
	stateClaimed  = 'c' // its owner works on it, or died
	stateDropped  = 'x' // its owner gave it back
	stateFinished = 'f' // the next generation is done, whatever is in its file
	stateDone     = 'd' // the end
)

const (
	formatVersion = '1'
	maxNonce      = 64
	// longest state and version, nonce, generation, length, sum, newline
	maxHeader = 2 + 1 + 2*maxNonce + 1 + 20 + 1 + 20 + 1 + 8 + 1
)

var (
	// ErrVersion means that a file was written in a later format. Such a file
	// is not judged, whatever its age.
	ErrVersion = errors.New("written in the format of a later version")

	errUnreadable = errors.New("torn or garbage")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type record struct {
	state      byte
	nonce      string // hex
	generation uint64
	body       []byte
}

func (r record) encode() []byte {
	b := make([]byte, 0, maxHeader+len(r.body))
	b = append(b, r.state, formatVersion, ' ')
	b = append(b, r.nonce...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, r.generation, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(r.body)), 10)
	b = append(b, ' ')
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(r.body, castagnoli))
	b = hex.AppendEncode(b, sum[:])
	b = append(b, '\n')
	return append(b, r.body...)
}

// header is the line before the body, and how much of a file it says to read.
type header struct {
	record
	sum  uint32
	body int // where the body begins
	size int // where it ends
}

// decodeHeader reads the line. If it is unreadable but the beginning of a done
// record, the state is stateDone beside errUnreadable: the work was done, though
// it is not known what was recorded.
func decodeHeader(p []byte) (header, error) {
	var h header
	if len(p) > 1 && isState(p[0]) && p[1] != formatVersion && p[1] >= '0' && p[1] <= '9' {
		return h, fmt.Errorf("%q: %w", p[:2], ErrVersion)
	}
	line, _, whole := bytes.Cut(p[:min(len(p), maxHeader)], []byte("\n"))
	if !whole {
		if isTornDone(line) {
			h.state = stateDone
		}
		return h, errUnreadable
	}
	return parseHeader(line)
}

func parseHeader(line []byte) (header, error) {
	f := bytes.Split(line, []byte(" "))
	if len(f) != 5 || len(f[0]) != 2 || !isState(f[0][0]) || !isNonce(f[1]) || len(f[4]) != 8 {
		return header{}, errUnreadable
	}
	generation, err1 := strconv.ParseUint(string(f[2]), 10, 64)
	length, err2 := strconv.ParseUint(string(f[3]), 10, 64)
	sum, err3 := strconv.ParseUint(string(f[4]), 16, 32)
	if err1 != nil || err2 != nil || err3 != nil || length > MaxRecord {
		return header{}, errUnreadable
	}
	h := header{sum: uint32(sum), body: len(line) + 1}
	h.record = record{state: f[0][0], nonce: string(f[1]), generation: generation}
	h.size = h.body + int(length)
	return h, nil
}

// decode reads a whole file. A body that is cut off or changed leaves the
// rest of the record readable beside errUnreadable.
func decode(p []byte) (record, error) {
	h, err := decodeHeader(p)
	if err != nil {
		return h.record, err
	}
	if len(p) < h.size || crc32.Checksum(p[h.body:h.size], castagnoli) != h.sum {
		return h.record, errUnreadable
	}
	h.record.body = bytes.Clone(p[h.body:h.size])
	return h.record, nil
}

func isState(b byte) bool {
	return b == stateClaimed || b == stateDropped || b == stateFinished || b == stateDone
}

func isTornDone(p []byte) bool {
	if len(p) == 0 || p[0] != stateDone {
		return false
	}
	const start = "d1 "
	if len(p) <= len(start) {
		return bytes.HasPrefix([]byte(start), p)
	}
	f := bytes.Split(p[len(start):], []byte(" "))
	return bytes.HasPrefix(p, []byte(start)) && len(f) <= 4 && isHex(bytes.Join(f, nil))
}

func isNonce(p []byte) bool { return len(p) > 0 && len(p) <= 2*maxNonce && isHex(p) }

func isHex(p []byte) bool { return len(bytes.Trim(p, "0123456789abcdef")) == 0 }

func encodeNonce(make Nonce) (string, error) {
	b, err := make()
	if err != nil {
		return "", fmt.Errorf("nonce: %w", err)
	}
	if len(b) == 0 || len(b) > maxNonce {
		return "", fmt.Errorf("nonce of %d bytes: must be 1 to %d", len(b), maxNonce)
	}
	return hex.EncodeToString(b), nil
}
