// PolicyFile: see docs/ARCHITECTURE.md
