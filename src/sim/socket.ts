import type { Connection } from '../net.ts';
import type { Link, SimNetwork } from './net.ts';
import type { SimProcess } from './world.ts';

/** What the kernel takes before `bufferedBytes` begins to count. */
const KERNEL_BUFFER_BYTES = 256 * 1024;
/** How long a closing handshake waits for the other end, as `ws` does. */
const CLOSE_TIMEOUT_MS = 30_000;
/** A ping goes out every 5 s, and silence until the next ends the connection: as in `net-ws.ts`. */
const SILENCE_MS = 10_000;
/** Abnormal end: no close frame was seen. */
export const ABNORMAL = 1006;
const TOO_LARGE = 1009;

type Frame =
  | { readonly type: 'data'; readonly data: string | Uint8Array; readonly bytes: number }
  | { readonly type: 'close'; readonly code: number; readonly reason: string }
  /** The upgrade's answer, ahead of all the server sends. */
  | { readonly type: 'accepted'; readonly run: () => void }
  /** The connection's end as the kernel tells it. */
  | { readonly type: 'end' };

/**
 * One end of a virtual TCP connection that carries WebSocket frames. What was sent arrives whole and in
 * order or the connection breaks; a cut link holds frames back until it heals or the sender's kernel gives up.
 */
export class SimSocket implements Connection {
  readonly subprotocol: string;
  readonly remoteAddress: string;
  onMessage: (data: string | Uint8Array) => void = () => {};
  onClose: (code: number, reason: string) => void = () => {};
  /** Set once, when the pair is made. */
  peer: SimSocket;
  readonly process: SimProcess;
  readonly path: string;
  readonly #network: SimNetwork;
  readonly #maxPayloadBytes: number;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #inFlightBytes = 0;
  #framesSent = 0;
  #broken = false;
  /** When the last frame sent arrives: the next may not overtake it. */
  #lastArrivalMs = 0;
  #lineFreeMs = 0;
  /** Held back by a cut link, in order. */
  #waiting: Frame[] = [];
  /** The parts of a text whose last one is still to come. */
  #parts = '';

  constructor(
    network: SimNetwork,
    process: SimProcess,
    options: { path: string; subprotocol: string; remoteAddress: string; maxPayloadBytes: number },
  ) {
    this.#network = network;
    this.process = process;
    this.path = options.path;
    this.subprotocol = options.subprotocol;
    this.remoteAddress = options.remoteAddress;
    this.#maxPayloadBytes = options.maxPayloadBytes;
    this.peer = this;
    process.onEnd(() => this.#processEnded());
  }

  /** The listening end answers the upgrade. */
  accept(run: () => void): void {
    this.#transmit({ type: 'accepted', run }, false);
  }

  get bufferedBytes(): number {
    return Math.max(0, this.#inFlightBytes - KERNEL_BUFFER_BYTES);
  }

  send(part: string | Uint8Array, more = false): void {
    if (this.#state !== 'open' || !this.process.alive) return;
    if (more) {
      this.#parts += String(part);
      return;
    }
    const data = this.#parts === '' ? part : this.#parts + String(part);
    this.#parts = '';
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    this.#inFlightBytes += bytes;
    this.#framesSent++;
    const frame: Frame = { type: 'data', data: typeof data === 'string' ? data : data.slice(), bytes };
    const link = this.#link;
    const random = this.#network.random;
    const lossy = this.#framesSent > 1 && this.#network.isLossy(this.path);
    if (link.resetPart > 0 && random.chance(link.resetPart)) {
      this.break();
      return;
    }
    if (lossy && link.lossPart > 0 && random.chance(link.lossPart)) {
      this.#inFlightBytes -= bytes;
      return;
    }
    const loose = lossy && link.reorderPart > 0 && random.chance(link.reorderPart);
    this.#transmit(frame, loose);
    if (lossy && link.duplicatePart > 0 && random.chance(link.duplicatePart)) {
      this.#inFlightBytes += bytes;
      this.#transmit(frame, true);
    }
  }

  close(code: number, reason: string): void {
    if (this.#state !== 'open' || !this.process.alive) return;
    this.#state = 'closing';
    this.#transmit({ type: 'close', code, reason }, false);
    this.process.clock.setTimeout(() => this.#closed(ABNORMAL, ''), CLOSE_TIMEOUT_MS);
  }

  terminate(): void {
    if (this.#state === 'closed' || !this.process.alive) return;
    this.#transmit({ type: 'end' }, false);
    this.process.clock.defer(() => this.#closed(ABNORMAL, ''));
    this.#state = 'closing';
  }

  /** The network breaks the connection: what is under way is lost, both ends learn of it in their own time. */
  break(): void {
    for (const end of [this, this.peer]) {
      end.#waiting = [];
      const delayMs = this.#network.random.between(0, this.#link.delayMaxMs * 2);
      end.#broken = true;
      this.#network.world.schedule(delayMs, 'reset', () => end.kernelClosed());
    }
  }

  /** The kernel found the connection dead. The other end, which may have nothing to send, misses the answer to its pings. */
  kernelClosed(): void {
    this.process.deliver(() => this.#closed(ABNORMAL, ''));
    const { peer } = this;
    if (peer.#state === 'open') {
      this.#network.world.schedule(SILENCE_MS, 'silence', () => {
        peer.process.deliver(() => peer.#closed(ABNORMAL, ''));
      });
    }
  }

  /** The link works again: TCP sends what it held back. */
  healed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const frame of waiting) this.#transmit(frame, false);
  }

  /** Until when what was sent is under way, held up by a slow or clogged link. */
  get busyUntilMs(): number {
    return this.#lastArrivalMs;
  }

  get #link(): Link {
    return this.#network.link(this.process.host, this.peer.process.host);
  }

  #transmit(frame: Frame, loose: boolean): void {
    if (this.#broken) return;
    const { world, random, tcpTimeoutMs } = this.#network;
    const link = this.#link;
    if (link.cut || this.#waiting.length > 0) {
      if (this.#waiting.length === 0) {
        world.schedule(tcpTimeoutMs, 'tcp timeout', () => {
          // Nothing of what waited has been let through since.
          if (this.#waiting[0] === frame) {
            this.#waiting = [];
            this.#broken = true;
            this.kernelClosed();
          }
        });
      }
      this.#waiting.push(frame);
      return;
    }
    const bytes = frame.type === 'data' ? frame.bytes : 0;
    this.#lineFreeMs =
      Math.max(this.#lineFreeMs, world.nowMs) + (link.bytesPerMs > 0 ? bytes / link.bytesPerMs : 0);
    let arrivalMs = this.#lineFreeMs + random.between(link.delayMinMs, link.delayMaxMs);
    if (loose) arrivalMs += random.between(0, Math.max(link.delayMaxMs * 4, link.lateMs));
    else this.#lastArrivalMs = arrivalMs = Math.max(arrivalMs, this.#lastArrivalMs);
    world.schedule(arrivalMs - world.nowMs, this.#arrivalLabel, () => this.#arrive(frame));
  }

  get #arrivalLabel(): string {
    return `${this.process.host}>${this.peer.process.host} ${this.path}`;
  }

  /** In the other end's kernel. */
  #arrive(frame: Frame): void {
    if (this.#broken) return;
    const { peer } = this;
    if (!this.#network.isUp(peer.process.host)) {
      this.#network.lostAtDeadHost(this);
      return;
    }
    if (!peer.process.alive || peer.#state === 'closed') {
      if (frame.type === 'data' || frame.type === 'accepted') this.#network.reset(this);
      return;
    }
    peer.process.deliver(() => peer.#take(frame, this));
  }

  #take(frame: Frame, from: SimSocket): void {
    if (frame.type === 'data') from.#inFlightBytes -= frame.bytes;
    if (this.#state === 'closed') return;
    if (frame.type === 'accepted') {
      frame.run();
    } else if (frame.type === 'end') {
      this.#closed(ABNORMAL, '');
    } else if (frame.type === 'close') {
      if (this.#state === 'open') this.#transmit(frame, false);
      this.#closed(frame.code, frame.reason);
    } else if (frame.bytes > this.#maxPayloadBytes) {
      this.#transmit({ type: 'close', code: TOO_LARGE, reason: 'message too large' }, false);
      this.#closed(TOO_LARGE, 'message too large');
    } else {
      const { trace } = this.#network.world;
      if (typeof frame.data === 'string') trace.text(frame.data);
      else trace.bytes(frame.data);
      this.onMessage(typeof frame.data === 'string' ? frame.data : frame.data.slice());
    }
  }

  #closed(code: number, reason: string): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#network.forget(this);
    this.onClose(code, reason);
  }

  /** kill -9: the kernel ends the connection after what was already sent. Power cut: it says nothing. */
  #processEnded(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    if (this.#network.isUp(this.process.host)) this.#transmit({ type: 'end' }, false);
    this.#network.forget(this);
  }
}
