import DaemonFakes

// Fakes that other test targets use as well.
typealias FakeTimers = DaemonFakes.FakeTimers
typealias FakeWatches = DaemonFakes.FakeWatches
