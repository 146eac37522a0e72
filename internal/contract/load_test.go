package contract

import "testing"

// contractFile is the real contract.
const contractFile = "../../candidates/contract.yaml"

func loadContract(t testing.TB) *Contract {
	t.Helper()
	c, err := Load(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
func TestX(t *testing.T) { t.Log(len(loadContract(t).Cases)) }
