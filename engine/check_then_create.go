package engine

import "fmt"

// checkThenCreate looks whether the claim is there, and creates it if it is
// not, as "if not exists: touch" does. It promises nothing where two look
// before either creates:
//
//  1. A looks: no claim.
//  2. B looks: no claim.
//  3. A creates the claim, and executes.
//  4. B creates it over A's, and executes.
type checkThenCreate struct{ claimFile }

func (p checkThenCreate) Try(sig Signature) (Outcome, error) {
	began := p.clock.Now()
	if out, done, err := readDone(p.fs, sig); done || err != nil {
		return out, err
	}
	there, err := exists(p.fs, sig.onlyClaim())
	if err != nil {
		return Outcome{}, unknown(fmt.Errorf("lstat %s: %w", sig.onlyClaim(), err))
	}
	if there {
		out, stale, err := p.judge(sig)
		if err != nil || !stale {
			return out, err
		}
	}
	return p.create(sig, p.fs.Overwrite, began)
}
