package main

import (
	"bytes"
	"context"
	"os"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

type drawAnswer struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

// draw prints a catalog as `opm alpha render-graph --draw-v0-semantics` does.
func draw(directory string) (a drawAnswer) {
	cfg, err := declcfg.LoadFS(context.Background(), os.DirFS(directory))
	if err != nil {
		a.Error = err.Error()
		return a
	}
	var text bytes.Buffer
	writer := declcfg.NewMermaidWriter(declcfg.WithV0Semantics(true))
	if err := writer.WriteChannels(*cfg, &text); err != nil {
		a.Error = err.Error()
	}
	a.Text = text.String()
	return a
}
