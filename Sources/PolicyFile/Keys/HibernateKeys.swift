import Policy

extension PolicyKeys {
  static var hibernate: PolicyKey {
    PolicyKey("hibernate", about: "which suspended workers are hibernated, and how") {
      PolicyKey(
        "enabled", \.hibernate.enabled, as: .boolean,
        about: """
          `false`: suspended workers stay in RAM, and `trim.mechanism: auto` writes no images
          """,
        meanings: [
          "false": "suspended workers stay in memory",
          "true": "suspended workers may be hibernated",
        ])
      PolicyKey(
        "max_footprint", \.hibernate.maxFootprint, as: Converter.size.or("unlimited"),
        about: """
          larger workers stay suspended. Memory that a worker offers as purgeable isn't counted. \
          Not less than `min_footprint`. `dormouse hibernate` ignores both limits, and so does \
          the [ladder](#ladder) before it terminates a worker
          """,
        less: "fewer workers are small enough to be hibernated",
        more: "larger workers are hibernated, too",
        meanings: ["unlimited": "workers of any size are hibernated"])
      PolicyKey(
        "min_footprint", \.hibernate.minFootprint, as: .size,
        about: "smaller workers stay suspended: they free too little",
        less: "smaller workers are hibernated, too", more: "small workers stay in memory")
      PolicyKey(
        "after", \.hibernate.after, as: Converter.duration.or("never"),
        about: """
          time suspended before hibernation without pressure; `never`: only under pressure or on \
          request
          """,
        less: "suspended workers are hibernated sooner",
        more: "suspended workers stay in memory longer",
        meanings: ["never": "workers are hibernated under pressure or on request only"])
      PolicyKey(
        "at_once_up_to", \.hibernate.atOnceUpTo, as: Converter.size.or("never"),
        about: """
          a worker of at most this footprint is hibernated as soon as it is suspended: its resume \
          isn't noticed. Larger ones wait for `after`. If such a worker is needed again too soon, \
          `early_wake` raises its time from 0, too
          """,
        less: "fewer workers are hibernated as soon as they are suspended",
        more: "larger workers are hibernated as soon as they are suspended",
        meanings: ["never": "small workers wait for hibernate.after, as large ones do"],
        neverIsSmallest: true)
      PolicyKey(
        "only_if_faster_than_relaunch", \.hibernate.onlyIfFasterThanRelaunch, as: .boolean,
        about: "a worker whose relaunch is faster than its resume isn't hibernated",
        meanings: [
          "false": "workers are hibernated even if a relaunch would be quicker",
          "true": "workers that launch quicker than they resume aren't hibernated",
        ])
      PolicyKey(
        "resume", \.hibernate.resume, as: .choice,
        about: """
          `eager`: all memory is back before the worker runs. `lazy`: its working set first, the \
          rest while it runs. `auto`: `lazy`, unless the worker is small or `eager` was faster in \
          its earlier resumes; `status` shows which, and why. `dormouse wrap` follows it too
          """)
      PolicyKey(
        "cooldown", \.hibernate.cooldown, as: .duration,
        about: "no hibernation for this long after a resume",
        less: "woken workers are hibernated again sooner",
        more: "woken workers stay in memory longer")
      PolicyKey(
        "demote_after", \.hibernate.demoteAfter, as: Converter.duration.or("never"),
        about: """
          a worker that was hibernated for this long without a wake counts as suspended in the \
          order of termination. Under pressure its image is removed first, if only the disk keeps \
          others from being hibernated. Without pressure nothing happens to it
          """)
      PolicyKey(
        "order", \.hibernate.order, listOf: .choice,
        about: """
          which worker is hibernated first under pressure; criteria as for `terminate.order`, \
          with the cost of a resume
          """, holder: .machine)
      disk
      PolicyKey(
        "overlay", \.hibernate.overlay, as: .boolean,
        about: """
          an image holds only what changed since the last one: a few milliseconds, and a tenth of \
          the writes. The last image stays on disk for that while the worker runs, with the \
          secrets that were in memory then; `false` removes it at the resume. Encrypted images \
          are always complete
          """)
      PolicyKey("compression", about: "how images are compressed") {
        PolicyKey(
          "algorithm", \.hibernate.compressionAlgorithm, as: .choice,
          about: """
            `lz4`: images are some 1.8 times as large as with `zstd`, and memory is back sooner: a \
            fifth sooner for a request that needs all of it. Trims always use `lz4`
            """,
          meanings: [
            "zstd": "images are smaller, and memory comes back more slowly",
            "lz4": "images are larger, and memory comes back sooner",
          ])
        PolicyKey(
          "level", \.hibernate.compressionLevel, as: .integer(-7...19),
          about: "zstd's level; of no effect on images of lz4",
          less: "images are larger, and quicker to write",
          more: "images are smaller, and slower to write")
      }
      PolicyKey(
        "durability", \.hibernate.durability, as: .choice,
        about: """
          `synced`: memory is freed when the disk has confirmed the image; a failing disk costs \
          nothing. `cached`: when the image is in the page cache. That is shorter \
          ([measured](hibernation.md#durable-before-anything-is-freed)), and a worker whose image \
          can't be written later loses its memory and is ended
          """,
        meanings: [
          "synced": "a worker's memory is freed only when the disk has confirmed its image",
          "cached": "a worker's memory is freed before the disk has confirmed its image",
        ])
      PolicyKey(
        "encrypt", \.hibernate.encrypt, as: .boolean,
        about: """
          images are encrypted (AES-256-GCM); the key is in the kernel's keyring until the \
          machine is switched off. Needs OpenSSL's `libcrypto.so.3` (Debian: `libssl3`). Without \
          it, or without a keyring, no worker is hibernated ([secrets](hibernation.md#secrets))
          """,
        meanings: [
          "false": "images are not encrypted", "true": "images are encrypted",
        ])
      PolicyKey(
        "drop_file_pages", \.hibernate.dropFilePages, as: .boolean,
        about: """
          clean pages of files (its program) that no other process uses leave RAM as well, and \
          are read again when needed ([files' pages](hibernation.md#files-pages))
          """,
        meanings: [
          "false": "workers' programs stay in memory until the kernel drops them",
          "true": "hibernated workers' programs leave memory, too",
        ])
      PolicyKey(
        "keep_working_set", \.hibernate.keepWorkingSet, as: .boolean,
        about: """
          the memory that a worker was seen to need first (1 to 3 MB for an interpreter) stays in \
          RAM while none is short, so that its first answer needs no copying \
          ([working set](hibernation.md#resuming-with-pages-missing))
          """,
        meanings: [
          "false": "hibernated workers leave nothing in memory but page tables and clean pages",
          "true": "hibernated workers keep what their first answer needs in memory",
        ])
    }
  }

  private static var disk: PolicyKey {
    PolicyKey("disk", about: "what images may use of the disk", holder: .machine) {
      PolicyKey(
        "budget", \.hibernate.disk.budget, as: .size,
        about: "the most that all images together may use, bases included; bases are removed first",
        less: "less disk for images: fewer workers are hibernated at once",
        more: "more disk for images: more workers are hibernated at once")
      PolicyKey(
        "min_free", \.hibernate.disk.minFreePercent, as: .percent,
        about: "the share of the file system that stays free",
        less: "images may fill the disk further", more: "hibernation stops earlier on a full disk"
      )
      PolicyKey(
        "daily_writes", \.hibernate.disk.dailyWrites, as: .size,
        about: """
          the most that is written to images in 24 hours, also over restarts of the daemon. The \
          size of an image is estimated from the worker's last one, the first time without \
          compression
          """,
        less: "fewer hibernations a day", more: "more hibernations a day, and more disk wear")
    }
  }
}
