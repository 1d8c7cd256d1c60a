import { beforeEach, describe, expect, it } from 'vitest';
import { StoreIdentity } from '../../../src/broker/store-identity.ts';
import { BrokerWorld } from '../../support/broker-world.ts';

describe("the identity of a broker's store", () => {
  let w: BrokerWorld;
  beforeEach(() => {
    w = new BrokerWorld({});
  });
  const disk = () => w.disk('b1').diskOf(w.process('b1'));
  const open = () => {
    const owner = { random: w.process('b1').random, clusterId: 'test', id: 'b1' };
    return w.settled(StoreIdentity.open(disk(), 'broker.json', owner));
  };

  it('counts every registration before it is sent, also across a power cut', async () => {
    const first = await open();
    expect(await w.settled(first.count())).toEqual({ storeId: first.storeId, starts: 1 });
    expect(await w.settled(first.count())).toMatchObject({ starts: 2 });
    w.disk('b1').settle(true);
    const again = await open();
    expect(await w.settled(again.count())).toEqual({ storeId: first.storeId, starts: 3 });
  });

  it('uses the number of a refused registration again, so that a twin that is refused for long gets no higher', async () => {
    const identity = await open();
    await w.settled(identity.count());
    for (let i = 0; i < 3; i++) {
      await w.settled(identity.takeBack());
      expect(await w.settled(identity.count())).toMatchObject({ starts: 1 });
    }
  });

  it('renewed it is another store, counted from the beginning', async () => {
    const identity = await open();
    const { storeId } = identity;
    await w.settled(identity.count());
    await w.settled(identity.renew());
    expect(identity.storeId).not.toBe(storeId);
    const again = await open();
    expect(await w.settled(again.count())).toEqual({ storeId: identity.storeId, starts: 1 });
  });

  it.each([{ starts: -1 }, { starts: 1.5 }, { starts: 'x' }, { starts: undefined }])(
    'is refused with %j',
    async (over) => {
      await open();
      const raw = disk();
      const known = JSON.parse(
        Buffer.from((await w.settled(raw.readFile('broker.json'))) ?? []).toString(),
      ) as object;
      await w.settled(raw.replaceFile('broker.json', Buffer.from(JSON.stringify({ ...known, ...over }))));
      await expect(open()).rejects.toMatchObject({ code: 'wrong_directory' });
    },
  );
});
