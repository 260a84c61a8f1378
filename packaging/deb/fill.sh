# What is missing is made, and noted, so that a purge can tell it from what was there before. None of it is a
# conffile: an nginx that comes back finds its own files as it left them. The configuration is made as a whole or
# not at all.
made=/var/lib/firstbyte-nginx/made
fill() {
	(cd "/usr/share/firstbyte-nginx/$1" && find . -type f) | sed 's/^\.//' | while read -r file; do
		if [ ! -e "$2$file" ]; then
			mkdir -p "$(dirname "$2$file")"
			cp -p "/usr/share/firstbyte-nginx/$1$file" "$2$file"
			echo "$2$file" >>"$made"
		fi
	done
}
if [ ! -e /etc/nginx/nginx.conf ]; then
	fill nginx /etc/nginx
	if [ ! -e /etc/nginx/sites-enabled/default ]; then
		mkdir -p /etc/nginx/conf.d /etc/nginx/sites-enabled
		ln -s ../sites-available/default /etc/nginx/sites-enabled/default
		echo /etc/nginx/sites-enabled/default >>"$made"
	fi
	if [ ! -e /var/www/html ]; then
		fill html /var/www/html
	fi
fi
fill init.d /etc/init.d
fill logrotate.d /etc/logrotate.d
# nginx takes the mode of its init script away when it is removed.
chmod +x /etc/init.d/nginx
