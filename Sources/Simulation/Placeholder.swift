// Simulation: see docs/ARCHITECTURE.md
