import type { Clock } from '../../raft/index.ts';
import type { SessionRef } from '../broker-services.ts';
import type { BrokerRow } from '../state/index.ts';
import { silenceUntilFreeMs, type BrokerTimings } from './timings.ts';

export function isOlderSession(a: SessionRef, b: SessionRef): boolean {
  return a.term < b.term || (a.term === b.term && a.n < b.n);
}

interface Contact {
  incarnation: number;
  /** `null`: this leader has not yet heard from any session of it. */
  session: SessionRef | null;
  /** The node that held its connection said that it closed. */
  disconnected: boolean;
  /** On the clock that stops while this process is stalled. */
  heardAwakeMs: number;
  /** On the real monotonic clock. */
  heardAtMs: number;
}

/** What an imported broker has to be started and to register: it was never here, and its shards stay as the file has them. */
const IMPORTED_START_MS = 60_000;

/** A tick later than this many intervals is a stall of our own loop. */
const STALL_TICKS = 2;

/**
 * Who is silent, from the leader's own memory: a new leader starts every silence anew. Silence is measured on a
 * clock that stands still while this process does, so that a stall of ours is never the brokers' silence.
 */
export class Liveness {
  readonly tickMs: number;
  readonly #clock: Clock;
  readonly #timings: BrokerTimings;
  readonly #contacts = new Map<string, Contact>();
  /** By broker: how many entries that end its incarnation are under way. */
  readonly #ending = new Map<string, number>();
  #awakeMs = 0;
  #tickedAtMs: number;

  constructor(clock: Clock, timings: BrokerTimings) {
    this.#clock = clock;
    this.#timings = timings;
    this.tickMs = timings.heartbeatMs / 4;
    this.#tickedAtMs = clock.now();
  }

  /** Called every `tickMs`. */
  tick(): void {
    this.#awakeMs = this.#awakeNowMs();
    this.#tickedAtMs = this.#clock.now();
  }

  /**
   * A sign of life. Answers false, and counts it for nothing, where a newer session of the same incarnation
   * has been heard.
   */
  heard(broker: string, incarnation: number, session: SessionRef): boolean {
    const contact = this.#contact(broker, incarnation);
    if (contact.incarnation !== incarnation) return false;
    if (contact.session !== null && isOlderSession(session, contact.session)) return false;
    contact.session = session;
    contact.disconnected = false;
    contact.heardAwakeMs = this.#awakeNowMs();
    contact.heardAtMs = this.#clock.now();
    return true;
  }

  /** The connection of that session closed. It stays alive until its silence is long enough. */
  disconnected(broker: string, incarnation: number, session: SessionRef): void {
    const contact = this.#contact(broker, incarnation);
    if (contact.incarnation !== incarnation) return;
    if (contact.session !== null && isOlderSession(session, contact.session)) return;
    contact.session = session;
    contact.disconnected = true;
  }

  /** Whether a process of that registration may be there: its connection is not known closed and it was heard within a lease. */
  sessionLives(row: BrokerRow): boolean {
    if (row.imported || row.lifecycle === 'down' || row.lifecycle === 'left') return false;
    const contact = this.#contact(row.id, row.incarnation);
    return !contact.disconnected && this.#awakeNowMs() - contact.heardAwakeMs < this.#timings.leaseMs;
  }

  /** Those that serve by their rows and of which no process may be there (`sessionLives`). */
  unheard(brokers: Iterable<BrokerRow>): string[] {
    const ids: string[] = [];
    for (const row of brokers) {
      const serves = row.lifecycle === 'live' || row.lifecycle === 'draining';
      if (serves && !row.imported && !this.sessionLives(row)) ids.push(row.id);
    }
    return ids;
  }

  /** Whether it has been silent, while we were awake, for expiry and margin; one just imported, for as long as its start may take. */
  isSilent(row: Pick<BrokerRow, 'id' | 'incarnation' | 'imported'>): boolean {
    const contact = this.#contact(row.id, row.incarnation);
    const enoughMs = silenceUntilFreeMs(this.#timings);
    const limitMs = row.imported ? Math.max(IMPORTED_START_MS, enoughMs) : enoughMs;
    return this.#awakeNowMs() - contact.heardAwakeMs >= limitMs;
  }

  /** How long ago it was last heard (or this leader began to listen), real ms. */
  silentForMs(broker: string, incarnation: number): number {
    return this.#clock.now() - this.#contact(broker, incarnation).heardAtMs;
  }

  /**
   * From this call on no heartbeat of that broker gets a lease: an entry that ends its incarnation is proposed. Returns what
   * to call once the entry is applied or never will be. Its row then says what became of the incarnation.
   */
  withholdLeases(broker: string): () => void {
    this.#ending.set(broker, (this.#ending.get(broker) ?? 0) + 1);
    return () => {
      const left = (this.#ending.get(broker) ?? 0) - 1;
      if (left > 0) this.#ending.set(broker, left);
      else this.#ending.delete(broker);
    };
  }

  mayLease(broker: string): boolean {
    return !this.#ending.has(broker);
  }

  forget(broker: string): void {
    this.#contacts.delete(broker);
  }

  #awakeNowMs(): number {
    return this.#awakeMs + Math.min(this.#clock.now() - this.#tickedAtMs, this.tickMs * STALL_TICKS);
  }

  #contact(broker: string, incarnation: number): Contact {
    const known = this.#contacts.get(broker);
    if (known !== undefined && known.incarnation >= incarnation) return known;
    const contact: Contact = {
      incarnation,
      session: null,
      disconnected: false,
      heardAwakeMs: this.#awakeNowMs(),
      heardAtMs: this.#clock.now(),
    };
    this.#contacts.set(broker, contact);
    return contact;
  }
}

/**
 * Until when (cluster time, ms) each broker may still serve what it led: an incarnation that is down or left, for
 * expiry and margin after its last sign of life; one replaced by a new registration, for as long after that.
 * Rests on replicated times alone, which no lease outlives: none is given once `down`, `left` or a registration
 * has been proposed.
 */
export function leasedUntil(
  brokers: Iterable<BrokerRow>,
  nowMs: number,
  timings: BrokerTimings,
): Map<string, number> {
  const until = new Map<string, number>();
  for (const row of brokers) {
    const gone = row.lifecycle === 'down' || row.lifecycle === 'left';
    const lastMs = gone ? (row.downSinceMs ?? row.registeredAtMs) : row.registeredAtMs;
    const untilMs = lastMs + silenceUntilFreeMs(timings);
    if (!row.imported && untilMs > nowMs) until.set(row.id, untilMs);
  }
  return until;
}
