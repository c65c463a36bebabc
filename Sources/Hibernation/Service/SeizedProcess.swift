import Linux

extension Operation {
  /// A process that is stopped and seized.
  struct SeizedProcess {
    let stat: ProcessStat
    let session: TraceSession
    var memory: ProcessMemory
    let sequences: RestartableSequences
    var mappings: [MemoryMapping] = []
    var pages: PageMap?
    /// A memo of what smaps has shown, if it was read.
    var memo: MappingMemo?
    var plan: PagePlan?
    /// Pages that are in the earlier image only, sorted by address.
    var missing: [PageRange] = []
    var scratchAddress: UInt64 = 0
    /// True if its threads are parked in the scratch area; see `Parking`.
    var isParked = false

    /// The working set, if it stays in memory.
    var resident: [PageRange] = []

    /// Addresses whose pages stay. ps(1) reads arguments and environment from the process's memory.
    var kept: [Range<UInt64>] {
      [stat.arguments, stat.environment] + sequences.ranges + resident.map { $0.address..<$0.end }
    }

    var parking: Parking {
      Parking(session: session, memory: memory, scratch: scratchAddress)
    }

    /// What the image says about the process.
    var imageProcess: ImageProcess {
      ImageProcess(
        pid: stat.pid, startTime: stat.startTime, scratchAddress: scratchAddress,
        threads: session.threads.map {
          ImageProcess.TracedThreadState(
            tid: $0.tid, isWaiting: $0.isWaiting, signalMask: $0.signalMask,
            registers: $0.registers.storedWords)
        })
    }
  }
}
