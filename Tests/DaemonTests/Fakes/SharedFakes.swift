import DaemonFakes

// Those that other suites use as well.
typealias FakeTimers = DaemonFakes.FakeTimers
typealias FakeWatches = DaemonFakes.FakeWatches
