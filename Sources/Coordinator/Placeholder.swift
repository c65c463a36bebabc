// Coordinator: see docs/ARCHITECTURE.md
