// Supervision: see docs/ARCHITECTURE.md
