//! What OLM starts in pods: cp, cpb, copy-content, bundle extraction, the health probe.
