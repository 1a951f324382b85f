//! What runs against a cluster: install and remove OLM, run a bundle, upgrade, clean up, diagnose.
