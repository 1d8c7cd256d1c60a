import { brokerCodec, CLOSE, MSGPACK_SUBPROTOCOL } from '../broker-protocol.ts';
import type { Connection } from '../net.ts';
import type { FollowMessage, LeadMessage } from './copy-protocol.ts';
import type { LedShard } from './led-shard.ts';

const codec = brokerCodec(MSGPACK_SUBPROTOCOL);
/** A copy that does not read is dropped, and dials again, bytes. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

export interface CopySourceHost {
  readonly clusterId: string;
  /** The shard if this broker leads it, opened. */
  led(shard: string): LedShard | undefined;
  /** The newest registration seen of a broker; 0: none. */
  incarnationOf(broker: string): number;
  ended(source: CopySource): void;
}

/** The leader's end of one follower's connection. */
export class CopySource {
  readonly #host: CopySourceHost;
  readonly #connection: Connection;
  readonly #following = new Set<string>();
  #broker: string | null = null;
  #incarnation = 0;

  constructor(host: CopySourceHost, connection: Connection) {
    this.#host = host;
    this.#connection = connection;
    connection.onMessage = (frame) => this.#take(frame);
    connection.onClose = () => this.#ended();
  }

  close(code: number, reason: string): void {
    this.#connection.close(code, reason);
    this.#ended();
  }

  readonly #send = (message: LeadMessage): void => {
    if (this.#connection.bufferedBytes > MAX_UNREAD_BYTES) this.#connection.terminate();
    else this.#connection.send(codec.encode(message));
  };

  #take(frame: string | Uint8Array): void {
    let message: FollowMessage;
    try {
      message = readFollow(codec.decode(frame));
    } catch (error) {
      this.close(CLOSE.protocol, error instanceof Error ? error.message : 'unreadable');
      return;
    }
    if (message.type === 'hello') {
      this.#greet(message);
      return;
    }
    const broker = this.#broker;
    if (broker === null) {
      this.close(CLOSE.protocol, 'the first message must be hello');
      return;
    }
    // Its broker may have registered again since the greeting: what this process holds is another store's then.
    if (this.#isReplaced(broker, this.#incarnation)) return;
    const { shard } = message;
    const led = this.#host.led(shard);
    switch (message.type) {
      case 'follow':
        if (led?.epoch !== message.epoch) {
          this.#send({ type: 'refused', shard, epoch: message.epoch });
          return;
        }
        this.#following.add(shard);
        led.follow(broker, this.#incarnation, message.end, message.lastEpoch, this.#send);
        return;
      case 'ack':
        if (led?.epoch === message.epoch) led.acknowledge(broker, this.#incarnation, message.end);
        return;
      case 'unfollow':
        this.#following.delete(shard);
        led?.detach(broker, this.#send);
    }
  }

  #greet({ clusterId, broker, incarnation }: Extract<FollowMessage, { type: 'hello' }>): void {
    if (clusterId !== this.#host.clusterId)
      this.close(CLOSE.refused, `this is cluster ${this.#host.clusterId}`);
    else if (!this.#isReplaced(broker, incarnation)) {
      this.#broker = broker;
      this.#incarnation = incarnation;
    }
  }

  /** Whether another process has registered as the broker since; then the connection is closed. */
  #isReplaced(broker: string, incarnation: number): boolean {
    if (incarnation >= this.#host.incarnationOf(broker)) return false;
    this.close(CLOSE.replaced, `broker ${broker} has registered again since`);
    return true;
  }

  #ended(): void {
    if (this.#broker !== null) {
      for (const shard of this.#following) this.#host.led(shard)?.detach(this.#broker, this.#send);
    }
    this.#following.clear();
    this.#host.ended(this);
  }
}

/** Checks the fields that are used; throws what is wrong. */
function readFollow(message: unknown): FollowMessage {
  const m = (typeof message === 'object' && message !== null ? message : {}) as Record<string, unknown>;
  const text = (key: string): boolean => typeof m[key] === 'string';
  const count = (key: string): boolean => Number.isSafeInteger(m[key]) && (m[key] as number) >= 0;
  const fits =
    (m['type'] === 'hello' && text('clusterId') && text('broker') && count('incarnation')) ||
    (m['type'] === 'follow' && text('shard') && count('epoch') && count('end') && count('lastEpoch')) ||
    (m['type'] === 'ack' && text('shard') && count('epoch') && count('end')) ||
    (m['type'] === 'unfollow' && text('shard'));
  if (!fits) throw new Error('no message of this protocol');
  return message as FollowMessage;
}
