-- What the marker of a scratch says, and the database's time: 1 row, of its very name.
SELECT name, made_by, lease_until_us, {now_us} AS now_us FROM {marker} ORDER BY name
