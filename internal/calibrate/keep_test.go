package calibrate

import (
	"strings"
	"testing"
)

func TestPartsOfAnEarlierCalibrationAreKeptAndToldApart(t *testing.T) {
	old := &File{Seed: 7, Sizes: fullSizes, Diluted: []Diluted{{Probe: "old"}}, Good: []Good{{Probe: "old"}}, Engine: []Engine{{Faults: "old"}}}
	f := &File{Sizes: fullSizes, Engine: []Engine{{Faults: "new"}}}
	if err := f.Keep(old, []string{"engine"}); err != nil {
		t.Fatal(err)
	}
	if len(f.Diluted) != 1 || len(f.Good) != 1 || f.Engine[0].Faults != "new" {
		t.Errorf("%+v", f)
	}
	page, err := f.markdown()
	if want := "dilution, exhibits, good: of 0001-01-01 00:00 UTC, seed 7"; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("%v: the page does not say %q:\n%s", err, want, page)
	}
	if err := f.Keep(&File{Sizes: quickSizes}, nil); err == nil {
		t.Error("sizes differ")
	}
}
