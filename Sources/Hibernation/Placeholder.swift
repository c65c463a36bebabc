// Hibernation: see docs/ARCHITECTURE.md
