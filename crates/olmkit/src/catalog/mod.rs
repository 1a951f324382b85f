//! File-based catalogs: model, load, write, graph, validate, render, templates, migrate, diff.
