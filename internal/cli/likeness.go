package cli

// likeness says how much two words resemble each other, from 0 to 1: the Jaro-Winkler similarity of their bytes, with which urfave/cli suggests flags and commands
// too. Its own suggestions name the nearest word however far that is, so they cannot tell when there is none.
func likeness(a, b string) float64 {
	j := jaro(a, b)
	if j <= 0.7 {
		return j
	}
	same := 0
	for same < min(len(a), len(b), 4) && a[same] == b[same] {
		same++
	}
	return j + 0.1*float64(same)*(1-j)
}

// jaro counts the letters that both words have at about the same place, and those of them in another order.
func jaro(a, b string) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	reach := max(0, max(len(a), len(b))/2-1)
	taken := make([]bool, len(b))
	var inA []byte
	for i := range len(a) {
		for j := max(0, i-reach); j <= min(len(b)-1, i+reach); j++ {
			if !taken[j] && a[i] == b[j] {
				taken[j] = true
				inA = append(inA, a[i])
				break
			}
		}
	}
	if len(inA) == 0 {
		return 0
	}
	moved, at := 0, 0
	for j := range len(b) {
		if taken[j] {
			if inA[at] != b[j] {
				moved++
			}
			at++
		}
	}
	m := float64(len(inA))
	return (m/float64(len(a)) + m/float64(len(b)) + (m-float64(moved/2))/m) / 3
}
