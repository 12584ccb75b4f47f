-- Who needs which right where: 1 row.
SELECT CAST(CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') AS CHAR) AS name, CAST(DATABASE() AS CHAR) AS place
