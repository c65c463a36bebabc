// Linux: see docs/ARCHITECTURE.md
