-- Says whose scratch it is: 1 row.
INSERT INTO {marker} (name, made_by, lease_until_us) VALUES (:name, :made_by, {now_us} + :lease_us)
