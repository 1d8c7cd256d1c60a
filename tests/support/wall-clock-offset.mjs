// Preloaded into a process of the binary (NODE_OPTIONS=--import): its wall clock is off by so many ms.
const offsetMs = Number(process.env.TEST_WALL_OFFSET_MS ?? 0);
const RealDate = Date;
const realNow = RealDate.now.bind(RealDate);

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(realNow() + offsetMs);
    else super(...args);
  }
  static now() {
    return realNow() + offsetMs;
  }
};
