import type { StateHash } from './hash.ts';
import { canonicalValue } from './rows.ts';
import { Table } from './table.ts';
import type { CommandResult } from './types.ts';

export const MAX_SESSIONS = 10_000;
/** Answers kept of each session; a request below the window is `session_expired`. */
export const SESSION_WINDOW = 128;

/** What all sessions with their answers may take in a snapshot; past it those unused the longest are forgotten. */
export const MAX_SESSION_BYTES = 32 * 1024 * 1024;

/** A client's session: its answers are kept so that a retry has one effect and gets the first answer. */
export interface SessionRow {
  readonly session: number;
  /** Log index of its last use. Cluster time never falls along the log, so this orders sessions by it, without ties. */
  readonly lastUsedIndex: number;
  /** A request below it is outside the window: whether it ran is no longer known. */
  readonly floor: number;
}

export interface AnswerRow {
  readonly session: number;
  readonly n: number;
  readonly result: CommandResult;
}

/** The session table: at most 10,000 sessions with 128 answers each, and `MAX_SESSION_BYTES` in all. */
export class Sessions {
  /** In order of last use, the longest unused first. */
  readonly #sessions: Table<number, SessionRow>;
  readonly #answers: Table<string, AnswerRow>;
  /** The kept `n` of each session, rising. */
  readonly #window = new Map<number, number[]>();

  constructor(hash: StateHash) {
    this.#sessions = new Table<number, SessionRow>(hash, 'session', canonicalValue);
    this.#answers = new Table<string, AnswerRow>(hash, 'answer', canonicalValue);
  }

  get rows(): ReadonlyMap<number, SessionRow> {
    return this.#sessions.rows;
  }

  get answers(): ReadonlyMap<string, AnswerRow> {
    return this.#answers.rows;
  }

  get bytes(): number {
    return this.#sessions.bytes + this.#answers.bytes;
  }

  open(index: number): void {
    if (this.rows.size >= MAX_SESSIONS) this.#removeLongestUnused();
    this.#sessions.put(index, { session: index, lastUsedIndex: index, floor: 0 });
    this.#window.set(index, []);
  }

  /** What is known of a request: its answer, that it is `new`, or that it can no longer be told (`expired`). */
  find(session: number, n: number): CommandResult | 'new' | 'expired' {
    const row = this.rows.get(session);
    if (row === undefined || n < row.floor) return 'expired';
    return this.answers.get(answerKey(session, n))?.result ?? 'new';
  }

  /** Moves the session to the end of the queue for being forgotten. */
  touch(session: number, index: number): void {
    const row = this.#sessions.delete(session);
    if (row !== undefined) this.#sessions.put(session, { ...row, lastUsedIndex: index });
  }

  /** For a session just touched: it is the last to be forgotten. */
  keep(session: number, n: number, result: CommandResult): void {
    this.#insert({ session, n, result });
    this.#cutWindow(session);
    while (this.bytes > MAX_SESSION_BYTES && this.rows.size > 1) this.#removeLongestUnused();
  }

  #cutWindow(session: number): void {
    const window = this.#windowOf(session);
    if (window.length <= SESSION_WINDOW) return;
    const oldest = window.shift();
    const row = this.rows.get(session);
    if (oldest === undefined || row === undefined) throw new Error(`session ${session} is not open`);
    this.#answers.delete(answerKey(session, oldest));
    this.#sessions.put(session, { ...row, floor: oldest + 1 });
  }

  /** Puts back what a snapshot held; sessions come in the order of their last use. */
  load(row: SessionRow): void {
    this.#sessions.put(row.session, row);
    this.#window.set(row.session, []);
  }

  /** After the sessions. */
  loadAnswer(row: AnswerRow): void {
    this.#insert(row);
  }

  #insert(row: AnswerRow): void {
    const window = this.#windowOf(row.session);
    let at = window.length;
    while (at > 0 && (window[at - 1] ?? 0) > row.n) at--;
    window.splice(at, 0, row.n);
    this.#answers.put(answerKey(row.session, row.n), row);
  }

  #removeLongestUnused(): void {
    const [longestUnused] = this.rows.keys();
    if (longestUnused !== undefined) this.#remove(longestUnused);
  }

  #remove(session: number): void {
    for (const n of this.#windowOf(session)) this.#answers.delete(answerKey(session, n));
    this.#window.delete(session);
    this.#sessions.delete(session);
  }

  #windowOf(session: number): number[] {
    const window = this.#window.get(session);
    if (window === undefined) throw new Error(`session ${session} is not open`);
    return window;
  }
}

function answerKey(session: number, n: number): string {
  return `${session}:${n}`;
}
