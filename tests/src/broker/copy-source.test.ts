import { describe, expect, it } from 'vitest';
import { CLOSE } from '../../../src/broker-protocol.ts';
import { CopySource } from '../../../src/broker/copy-source.ts';
import type { Connection } from '../../../src/net.ts';
import { decode, encode } from '../../support/frames.ts';

/** A leader's end of one connection; it leads nothing, so it refuses every copy that it lets speak. */
function connected() {
  const registered = { incarnation: 2 };
  const sent: Record<string, unknown>[] = [];
  const closed: number[] = [];
  const connection: Connection = {
    ...{ subprotocol: '', remoteAddress: 'b2:1', bufferedBytes: 0 },
    send: (frame) => void sent.push(decode(frame)),
    close: (code) => void closed.push(code),
    terminate: () => {},
    onMessage: () => {},
    onClose: () => {},
  };
  void new CopySource(
    {
      clusterId: 'test',
      led: () => undefined,
      incarnationOf: () => registered.incarnation,
      ended: () => {},
    },
    connection,
  );
  const hello = (incarnation: number) =>
    connection.onMessage(encode({ type: 'hello', clusterId: 'test', broker: 'b2', incarnation }, true));
  const follow = () =>
    connection.onMessage(
      encode({ type: 'follow', shard: 'stream:orders/0', epoch: 1, end: 0, lastEpoch: 0 }, true),
    );
  return { registered, sent, closed, hello, follow };
}

describe('a leader, to a process whose broker', () => {
  it('is registered as that process, listens', () => {
    const { sent, closed, hello, follow } = connected();
    hello(2);
    follow();
    expect(closed).toEqual([]);
    expect(sent).toMatchObject([{ type: 'refused' }]);
  });

  it('had registered again before it connected, says that it was replaced', () => {
    const { sent, closed, hello } = connected();
    hello(1);
    expect(closed).toEqual([CLOSE.replaced]);
    expect(sent).toEqual([]);
  });

  it('has registered again since, says that it was replaced when it asks for a copy', () => {
    const { registered, sent, closed, hello, follow } = connected();
    hello(2);
    registered.incarnation = 3;
    follow();
    expect(closed).toEqual([CLOSE.replaced]);
    expect(sent).toEqual([]);
  });
});
