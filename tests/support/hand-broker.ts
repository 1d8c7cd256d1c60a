import { WebSocket } from 'ws';
import type { WatchedAssignment } from './watcher.ts';

export interface HandBrokerOptions {
  readonly id: string;
  readonly clusterId: string;
  readonly endpoints: readonly string[];
  readonly zone?: string;
  readonly maxShards?: number;
  readonly weight?: number;
  readonly storeId?: string;
  /** Whether a fellow broker can be copied to now; every one can where this is not given. */
  readonly isUp?: (broker: string) => boolean;
}

interface Frame {
  readonly id?: number;
  readonly type: string;
  readonly error?: { readonly code: string; readonly message: string; readonly retriable: boolean };
  readonly assignments?: readonly WatchedAssignment[];
  readonly changes?: readonly {
    readonly kind: string;
    readonly assignment?: WatchedAssignment;
    readonly shard?: string;
  }[];
  readonly [key: string]: unknown;
}

/**
 * A broker played by the test over the plain wire protocol, written from docs/protocol.md alone: it holds no
 * data, does at once what it is asked to, and stops at whatever the test holds back.
 */
export class HandBroker {
  /** While true, no copy gets in sync (`copy`), no fenced shard drains (`drain`), nothing is confirmed (`confirm`). */
  readonly hold = { copy: false, drain: false, confirm: false };
  readonly rows = new Map<string, WatchedAssignment>();
  readonly errors: { type: string; code: string; message: string }[] = [];
  incarnation: number | null = null;
  lifecycle = '';
  private readonly options: HandBrokerOptions;
  private readonly pending = new Map<number, (frame: Frame) => void>();
  private socket: WebSocket | null = null;
  private timer: NodeJS.Timeout | null = null;
  private nextEndpoint = 0;
  private nextId = 1;
  private heartbeatMs = 1_000;
  private stopped = false;
  private acting = false;
  private again = false;
  private closeCode = 0;

  constructor(options: HandBrokerOptions) {
    this.options = options;
  }

  /** Connects and registers; keeps at it until `stop`. */
  async start(): Promise<this> {
    this.stopped = false;
    await new Promise<void>((resolve) => this.connect(resolve));
    return this;
  }

  /** Falls silent at once, as a killed process would. */
  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    this.socket?.terminate();
  }

  get lastCloseCode(): number {
    return this.closeCode;
  }

  request(type: string, fields: Readonly<Record<string, unknown>>): Promise<Frame> {
    const id = this.nextId++;
    const { socket } = this;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.resolve({ type: 'closed' });
    return new Promise((resolve) => {
      this.pending.set(id, resolve);
      socket.send(JSON.stringify({ id, type, ...fields }));
    });
  }

  private connect(ready: () => void): void {
    if (this.stopped) return;
    const endpoint = this.options.endpoints[this.nextEndpoint++ % this.options.endpoints.length] ?? '';
    const socket = new WebSocket(`ws://${endpoint}/broker`, 'evenkeel.broker.v1+json', {
      perMessageDeflate: false,
    });
    this.socket = socket;
    socket.on('open', () => {
      void this.join().then((joined) => {
        if (joined) ready();
        else socket.terminate();
      });
    });
    socket.on('message', (data: Buffer) => this.take(JSON.parse(data.toString('utf8')) as Frame));
    socket.on('error', () => socket.terminate());
    socket.on('close', (code) => {
      this.closeCode = code;
      if (this.timer) clearTimeout(this.timer);
      for (const [, settle] of this.pending) settle({ type: 'closed' });
      this.pending.clear();
      if (!this.stopped) setTimeout(() => this.connect(ready), 50);
    });
  }

  private async join(): Promise<boolean> {
    const { id, clusterId, zone, maxShards, weight, storeId } = this.options;
    const broker = {
      id,
      addresses: { data: `127.0.0.1:1` },
      storeId: storeId ?? `store-${id}`,
      ...(zone === undefined ? {} : { zone }),
      ...(maxShards === undefined ? {} : { maxShards }),
      ...(weight === undefined ? {} : { weight }),
    };
    let answer = await this.request('register', {
      clusterId,
      broker,
      ...(this.incarnation === null ? {} : { incarnation: this.incarnation }),
    });
    if (answer.type === 'error') {
      this.note('register', answer);
      if (answer.error?.code !== 'must_register') return false;
      answer = await this.request('register', { clusterId, broker });
    }
    if (answer.type !== 'register.ok') return false;
    this.incarnation = answer['incarnation'] as number;
    this.lifecycle = answer['lifecycle'] as string;
    this.heartbeatMs = answer['heartbeatMs'] as number;
    this.rows.clear();
    await this.request('watch', { filter: { broker: id } });
    this.beat();
    return true;
  }

  private beat(): void {
    this.timer = setTimeout(() => {
      void this.request('heartbeat', { incarnation: this.incarnation }).then((answer) => {
        if (answer.type === 'heartbeat.ok') this.lifecycle = answer['lifecycle'] as string;
        if (answer.type === 'error') {
          this.note('heartbeat', answer);
          if (answer.error?.code === 'must_register') this.socket?.terminate();
        }
        this.act();
        if (answer.type !== 'closed') this.beat();
      });
    }, this.heartbeatMs / 4);
  }

  private note(type: string, answer: Frame): void {
    if (answer.error) this.errors.push({ type, code: answer.error.code, message: answer.error.message });
  }

  private take(frame: Frame): void {
    if (frame.id !== undefined) {
      this.pending.get(frame.id)?.(frame);
      this.pending.delete(frame.id);
      return;
    }
    for (const row of frame.assignments ?? []) this.rows.set(row.shard, row);
    for (const change of frame.changes ?? []) {
      if (change.kind === 'assignment' && change.assignment)
        this.rows.set(change.assignment.shard, change.assignment);
      if (change.kind === 'removed' && change.shard) this.rows.delete(change.shard);
    }
    if (frame.type.startsWith('watch.')) this.act();
  }

  /** Does whatever the rows ask of this broker now and is not held back; what was refused is seen again in the next row. */
  act(): void {
    if (this.acting) {
      this.again = true;
      return;
    }
    this.acting = true;
    void this.work().finally(() => {
      this.acting = false;
      if (this.again && !this.stopped) {
        this.again = false;
        this.act();
      }
    });
  }

  /** Says of every copy that is behind that it has caught up, once, whatever is held back. Answers of how many shards. */
  async catchUp(): Promise<number> {
    const shards = this.led().flatMap((row) => this.caughtUp(row) ?? []);
    if (shards.length > 0) {
      this.note('report', await this.request('report', { incarnation: this.incarnation, shards }));
    }
    return shards.length;
  }

  private led(): WatchedAssignment[] {
    return [...this.rows.values()].filter((row) => row.leader === this.options.id);
  }

  /** The report that every copy of the shard is in sync; `null`: there is nothing to say. */
  private caughtUp(row: WatchedAssignment): object | null {
    const { isUp = () => true } = this.options;
    const behind = row.replicas.filter((copy) => !row.inSync.includes(copy) && isUp(copy));
    if (row.state === 'assigning' || behind.length === 0) return null;
    const { shard, generation, inSync } = row;
    return { shard, generation, inSync: [...inSync, ...behind], leaderOffset: 0, followers: {} };
  }

  private async work(): Promise<void> {
    const led = this.led();
    const opens = led.filter((row) => row.state === 'assigning' && !this.hold.confirm);
    if (opens.length > 0) {
      const shards = opens.map(({ shard, generation }) => ({ shard, generation }));
      this.note('confirm', await this.request('confirm', { incarnation: this.incarnation, shards }));
    }
    const reports = led.flatMap((row): object[] => {
      const { shard, generation } = row;
      const caughtUp = this.hold.copy ? null : this.caughtUp(row);
      if (caughtUp !== null) return [caughtUp];
      const ready = row.state === 'draining' && row.move !== null && row.inSync.includes(row.move.to);
      return ready && !this.hold.drain
        ? [{ shard, generation, leaderOffset: 0, followers: {}, drained: true }]
        : [];
    });
    if (reports.length > 0) {
      this.note('report', await this.request('report', { incarnation: this.incarnation, shards: reports }));
    }
  }
}
