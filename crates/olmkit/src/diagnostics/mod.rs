//! Findings with file, line and column, and their renderings: text, JSON, SARIF, CI annotations.
