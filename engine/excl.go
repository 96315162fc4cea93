package engine

// excl creates the claim exclusively, and it has no end. It promises at most
// one execution, and rests on excl-create alone. A death leaves a tombstone,
// and the work is missed for ever:
//
//  1. A creates the claim.
//  2. A dies.
//  3. B is told EEXIST, today and for ever.
type excl struct{ claimFile }

func newExcl(e Env) excl {
	p := excl{newClaimFile(e)}
	p.forever = true
	return p
}

func (p excl) Try(sig Signature) (Outcome, error) {
	if out, done, err := readDone(p.fs, sig); done || err != nil {
		return out, err
	}
	return heldIfExists(p.create(sig, p.fs.Create, p.clock.Now()))
}
