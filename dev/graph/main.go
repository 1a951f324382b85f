// Command graph answers questions about OLM v0's upgrade graphs with upstream's own code: OLM's resolver, and
// operator-registry's index and drawings. It reads JSON, one question a line, and writes one answer a line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// question is one line of input: a path, a set of bundles, or a drawing.
type question struct {
	pathQuestion
	Bundles  []indexBundle `json:"bundles,omitempty"` // to add to an empty index
	Mode     string        `json:"mode,omitempty"`    // replaces or semver
	OneByOne bool          `json:"oneByOne,omitempty"`
	Draw     bool          `json:"draw,omitempty"` // the catalog, with v0 semantics
}

// catalogs keeps the catalogs that were asked about last, each with and without dependencies.
type catalogs struct {
	most  int
	order []string
	open  map[string]map[bool]*world
	fails map[string]error
}

func (c *catalogs) get(directory string, ignoreDependencies bool) (*world, error) {
	if err, failed := c.fails[directory]; failed {
		return nil, err
	}
	if found, ok := c.open[directory]; ok {
		return found[ignoreDependencies], nil
	}
	worlds, err := openCatalog(directory)
	if err != nil {
		c.fails[directory] = err
		return nil, err
	}
	if len(c.order) >= c.most {
		delete(c.open, c.order[0])
		c.order = c.order[1:]
	}
	c.order = append(c.order, directory)
	c.open[directory] = worlds
	return worlds[ignoreDependencies], nil
}

func openCatalog(directory string) (map[bool]*world, error) {
	s, err := serve(directory)
	if err != nil {
		return nil, err
	}
	strict, err := newWorld(s)
	if err != nil {
		return nil, err
	}
	free, err := newWorld(s.withoutDependencies())
	if err != nil {
		return nil, err
	}
	return map[bool]*world{false: strict, true: free}, nil
}

func main() {
	logrus.SetOutput(io.Discard)
	open := &catalogs{most: 4, open: map[string]map[bool]*world{}, fails: map[string]error{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, "not a question:", err)
			os.Exit(2)
		}
		var answer any
		switch {
		case q.Draw:
			answer = draw(q.Catalog)
		case q.Bundles != nil:
			answer = index(q.Bundles, q.Mode, q.OneByOne)
		default:
			w, err := open.get(q.Catalog, q.Dependencies == "ignore")
			if err != nil {
				answer = pathAnswer{Chain: []string{}, End: "no catalog", Error: err.Error()}
			} else {
				answer = w.answer(q.pathQuestion)
			}
		}
		if err := encoder.Encode(answer); err != nil {
			os.Exit(1)
		}
		if err := out.Flush(); err != nil {
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
